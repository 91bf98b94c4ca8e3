/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit/unit.h"
#include "base/mailbox.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SENDERS 3
#define LETTERS 20000

struct letter {
	struct rvcm_list node;
	int sender;
	int number;
};

static void one_thread(void **state)
{
	struct letter letters[3] = { { .number = 0 }, { .number = 1 }, { .number = 2 } };
	struct rvcm_mailbox mb;
	struct rvcm_list mail;

	(void)state;
	rvcm_mailbox_init(&mb);
	rvcm_list_init(&mail);
	assert_false(rvcm_mailbox_pending(&mb));
	rvcm_mailbox_take_all(&mb, &mail);
	assert_true(rvcm_list_empty(&mail));
	assert_true(rvcm_mailbox_post(&mb, &letters[0].node));
	assert_true(rvcm_mailbox_pending(&mb));
	assert_false(rvcm_mailbox_post(&mb, &letters[1].node));
	rvcm_mailbox_take_all(&mb, &mail);
	assert_false(rvcm_mailbox_pending(&mb));
	assert_true(rvcm_mailbox_post(&mb, &letters[2].node));
	rvcm_mailbox_take_all(&mb, &mail);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(rvcm_list_pop(&mail), &letters[i].node);
	assert_null(rvcm_list_pop(&mail));
	rvcm_mailbox_fini(&mb);
}

static struct {
	struct rvcm_mailbox mb;
	int wake_fd;
	struct letter letters[SENDERS][LETTERS];
} office;

static void *send_all(void *arg)
{
	int sender = (int)(intptr_t)arg;

	for (int i = 0; i < LETTERS; i++) {
		struct letter *letter = &office.letters[sender][i];

		letter->sender = sender;
		letter->number = i;
		if (rvcm_mailbox_post(&office.mb, &letter->node) &&
		    eventfd_write(office.wake_fd, 1))
			return arg;
	}
	return NULL;
}

/* Counts letters out of order into *wrong; returns how many there were. */
static int read_mail(int next[SENDERS], int *wrong)
{
	struct rvcm_list mail, *node;
	int n = 0;

	rvcm_list_init(&mail);
	rvcm_mailbox_take_all(&office.mb, &mail);
	while ((node = rvcm_list_pop(&mail))) {
		struct letter *letter = rvcm_list_entry(node, struct letter, node);

		*wrong += letter->number != next[letter->sender]++;
		n++;
	}
	return n;
}

/* The reader sleeps until it is woken: were one wake-up missing, it would sleep for ever. */
static void every_letter_arrives_in_order(void **state)
{
	int next[SENDERS] = { 0 }, got = 0, wrong = 0;
	pthread_t senders[SENDERS];
	struct pollfd pfd;

	(void)state;
	rvcm_mailbox_init(&office.mb);
	office.wake_fd = eventfd(0, EFD_CLOEXEC);
	assert_true(office.wake_fd >= 0);
	pfd = (struct pollfd) { .fd = office.wake_fd, .events = POLLIN };
	for (intptr_t i = 0; i < SENDERS; i++)
		assert_int_equal(pthread_create(&senders[i], NULL, send_all, (void *)i), 0);
	while (got < SENDERS * LETTERS) {
		eventfd_t count;

		assert_int_equal(poll(&pfd, 1, 60000), 1);
		assert_int_equal(eventfd_read(office.wake_fd, &count), 0);
		got += read_mail(next, &wrong);
	}
	for (int i = 0; i < SENDERS; i++) {
		void *failed;

		assert_int_equal(pthread_join(senders[i], &failed), 0);
		assert_null(failed);
		assert_int_equal(next[i], LETTERS);
	}
	assert_int_equal(wrong, 0);
	assert_false(rvcm_mailbox_pending(&office.mb));
	close(office.wake_fd);
	rvcm_mailbox_fini(&office.mb);
}

static void *send_one(void *arg)
{
	struct letter *letter = arg;

	letter->number = 0;
	rvcm_mailbox_post(&office.mb, &letter->node);
	return NULL;
}

/* A reader that only looks at the flag gets there too, and sees what the sender wrote. */
static void the_flag_shows_mail(void **state)
{
	struct letter letter = { .number = -1 };
	int next[SENDERS] = { 0 }, wrong = 0;
	pthread_t sender;

	(void)state;
	rvcm_mailbox_init(&office.mb);
	assert_int_equal(pthread_create(&sender, NULL, send_one, &letter), 0);
	while (!rvcm_mailbox_pending(&office.mb))
		sched_yield();
	assert_int_equal(read_mail(next, &wrong), 1);
	assert_int_equal(wrong, 0);
	assert_int_equal(pthread_join(sender, NULL), 0);
	rvcm_mailbox_fini(&office.mb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread),
		cmocka_unit_test(every_letter_arrives_in_order),
		cmocka_unit_test(the_flag_shows_mail),
	};

	return cmocka_run_group_tests_name("mailbox", tests, NULL, NULL);
}
