/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_av(3): addresses in, numbers out, and back. */
#include "conf/conf.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

static const struct conf_options plain;

static struct sockaddr_in address(uint32_t host, uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };

	sin.sin_addr.s_addr = htonl(host);
	sin.sin_port = htons(port);
	return sin;
}

static void expect(struct fid_av *av, fi_addr_t number, const struct sockaddr_in *sin)
{
	struct sockaddr_in found;
	size_t len = sizeof(found);

	memset(&found, 0, sizeof(found));
	conf_ok(fi_av_lookup(av, number, &found, &len));
	assert_int_equal(len, sizeof(found));
	assert_int_equal(found.sin_family, AF_INET);
	assert_int_equal(found.sin_port, sin->sin_port);
	assert_int_equal(found.sin_addr.s_addr, sin->sin_addr.s_addr);
}

static void what_goes_in_comes_out(void **state)
{
	struct conf_node node;
	struct sockaddr_in sins[3];
	fi_addr_t numbers[3];

	(void)state;
	conf_need_ip_names();
	conf_open(&node, &plain);
	for (int i = 0; i < 3; i++)
		sins[i] = address(0x0a000001 + (uint32_t)i, (uint16_t)(1000 + i));
	assert_int_equal(fi_av_insert(node.av, sins, 3, numbers, FI_MORE, NULL), 3);
	for (int i = 0; i < 3; i++)
		expect(node.av, numbers[i], &sins[i]);
	conf_close(&node);
}

static void a_table_counts_from_zero(void **state)
{
	struct conf_options options = { .av_type = FI_AV_TABLE };
	struct sockaddr_in sins[4];
	struct conf_node node;

	(void)state;
	conf_need_ip_names();
	conf_open(&node, &options);
	for (int i = 0; i < 4; i++)
		sins[i] = address(0x0a000001, (uint16_t)(2000 + i));
	assert_int_equal(fi_av_insert(node.av, sins, 2, NULL, 0, NULL), 2);
	assert_int_equal(fi_av_insert(node.av, sins + 2, 2, NULL, 0, NULL), 2);
	for (fi_addr_t i = 0; i < 4; i++)
		expect(node.av, i, &sins[i]);
	conf_close(&node);
}

static void a_map_works_too(void **state)
{
	struct conf_options options = { .av_type = FI_AV_MAP };
	struct sockaddr_in sin = address(0x0a000001, 2100);
	struct conf_node node;
	fi_addr_t number;

	(void)state;
	conf_need_ip_names();
	conf_open(&node, &options);
	assert_int_equal(fi_av_insert(node.av, &sin, 1, &number, 0, NULL), 1);
	expect(node.av, number, &sin);
	conf_close(&node);
}

static void many_addresses_fit(void **state)
{
	const size_t count = 20000;
	struct sockaddr_in *sins = calloc(count, sizeof(*sins));
	fi_addr_t *numbers = calloc(count, sizeof(*numbers));
	struct conf_node node;

	(void)state;
	conf_need_ip_names();
	conf_open(&node, &plain);
	for (size_t i = 0; i < count; i++)
		sins[i] = address(0x0a000001 + (uint32_t)(i / 100), (uint16_t)(3000 + i % 100));
	assert_int_equal(fi_av_insert(node.av, sins, count, numbers, 0, NULL), count);
	for (size_t i = 0; i < count; i += 97)
		expect(node.av, numbers[i], &sins[i]);
	assert_int_equal(fi_av_remove(node.av, numbers, count, 0), 0);
	conf_close(&node);
	free(numbers);
	free(sins);
}

static void removed_addresses_can_be_inserted_again(void **state)
{
	struct sockaddr_in sin = address(0x0a000001, 4000), other = address(0x0a000002, 4000);
	struct conf_node node;
	fi_addr_t first, second, again;

	(void)state;
	conf_need_ip_names();
	conf_open(&node, &plain);
	assert_int_equal(fi_av_insert(node.av, &sin, 1, &first, 0, NULL), 1);
	assert_int_equal(fi_av_insert(node.av, &other, 1, &second, 0, NULL), 1);
	conf_ok(fi_av_remove(node.av, &first, 1, 0));
	expect(node.av, second, &other);
	assert_int_equal(fi_av_insert(node.av, &sin, 1, &again, 0, NULL), 1);
	expect(node.av, again, &sin);
	expect(node.av, second, &other);
	conf_close(&node);
}

static void names_and_services_are_looked_up(void **state)
{
	struct sockaddr_in sin = address(INADDR_LOOPBACK, 4711);
	struct conf_node node;
	fi_addr_t number;

	(void)state;
	conf_need_ip_names();
	conf_open(&node, &plain);
	assert_int_equal(fi_av_insertsvc(node.av, "127.0.0.1", "4711", &number, 0, NULL), 1);
	expect(node.av, number, &sin);
	conf_close(&node);
}

static void a_lookup_says_how_much_room_it_needs(void **state)
{
	struct sockaddr_in sin = address(0x0a000001, 4001);
	struct conf_node node;
	uint8_t small[4] = { 0 }, guard[4] = { 0 };
	size_t len = sizeof(small);
	fi_addr_t number;

	(void)state;
	conf_need_ip_names();
	conf_open(&node, &plain);
	assert_int_equal(fi_av_insert(node.av, &sin, 1, &number, 0, NULL), 1);
	conf_ok(fi_av_lookup(node.av, number, small, &len));
	assert_int_equal(len, sizeof(sin));
	assert_memory_equal(small, &sin, sizeof(small));
	assert_int_equal(guard[0], 0);
	conf_close(&node);
}

static void addresses_print(void **state)
{
	struct sockaddr_in sin = address(0x0a000001, 4002);
	struct conf_node node;
	char text[128], small[8];
	size_t len = sizeof(text), small_len = sizeof(small);

	(void)state;
	conf_need_ip_names();
	conf_open(&node, &plain);
	assert_ptr_equal(fi_av_straddr(node.av, &sin, text, &len), text);
	assert_non_null(strstr(text, "10.0.0.1:4002"));
	assert_int_equal(len, strlen(text) + 1);
	fi_av_straddr(node.av, &sin, small, &small_len);
	assert_true(small_len >= strlen(text));
	assert_memory_equal(small, text, sizeof(small) - 1);
	assert_int_equal(small[sizeof(small) - 1], 0);
	conf_close(&node);
}

static void a_vector_in_use_cannot_be_closed(void **state)
{
	struct conf_node node;

	(void)state;
	conf_open(&node, &plain);
	assert_int_equal(fi_close(&node.av->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&node.txcq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&node.domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&node.fabric->fid), -FI_EBUSY);
	conf_close(&node);
}

/* fi_domain(3), av_type: UNSPEC says that either one is supported, another value which one is. */
static void the_types_that_are_offered_can_be_opened(void **state)
{
	static const enum fi_av_type types[] = { FI_AV_MAP, FI_AV_TABLE, FI_AV_UNSPEC };
	struct conf_node node;

	(void)state;
	conf_open(&node, &plain);
	for (int i = 0; i < 3; i++) {
		struct fi_av_attr attr = { .type = types[i] };
		enum fi_av_type offered = node.info->domain_attr->av_type;
		struct fid_av *av;

		if (offered && types[i] && offered != types[i])
			continue;
		conf_ok(fi_av_open(node.domain, &attr, &av, NULL));
		/* fi_av(3): the type used is returned */
		assert_true(attr.type == FI_AV_MAP || attr.type == FI_AV_TABLE);
		conf_ok(fi_close(&av->fid));
	}
	conf_close(&node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_in_comes_out),
		cmocka_unit_test(a_table_counts_from_zero),
		cmocka_unit_test(a_map_works_too),
		cmocka_unit_test(many_addresses_fit),
		cmocka_unit_test(removed_addresses_can_be_inserted_again),
		cmocka_unit_test(names_and_services_are_looked_up),
		cmocka_unit_test(a_lookup_says_how_much_room_it_needs),
		cmocka_unit_test(addresses_print),
		cmocka_unit_test(a_vector_in_use_cannot_be_closed),
		cmocka_unit_test(the_types_that_are_offered_can_be_opened),
	};

	conf_provider();
	return conf_run_tests("av", tests);
}
