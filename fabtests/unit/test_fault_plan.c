/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans of dev/fault: what is one, what is wrong with what is not, and which operations they hit.
 */
#include "unit/unit.h"

#include <errno.h>
#include <string.h>

#include "dev/fault/plan.h"

static void is_no_plan(const char *text, size_t at, const char *why)
{
	struct rvcm_fault_complaint bad = { .at = 999 };

	assert_int_equal(rvcm_fault_check(text, &bad), -EINVAL);
	assert_string_equal(bad.text, why);
	assert_int_equal(bad.at, at);
}

static void what_is_wrong_is_told(void **state)
{
	(void)state;
	is_no_plan("sned:1=break", 0, "sned is no operation");
	is_no_plan(";", 0, "operation is missing");
	is_no_plan("send:1=break;", 13, "operation is missing");
	is_no_plan("send", 4, "':' is missing behind the operation");
	is_no_plan("send:1", 6, "'=' is missing behind the number");
	is_no_plan("send:=break", 5, "number is missing");
	is_no_plan("send:1x=break", 5, "1x is no number");
	is_no_plan("send:0=break", 5, "this number is too small");
	is_no_plan("send:every:0=break", 11, "this number is too small");
	is_no_plan("send:every:=break", 11, "number is missing");
	is_no_plan("send:99999999999999999999=break", 5, "this number is too large");
	is_no_plan("send:1/0=break", 7, "this number is too small");
	is_no_plan("send:3/2=break", 7, "a chance is not above one");
	is_no_plan("send:every:1/2=break", 12, "'=' is missing behind the number");
	is_no_plan("send:1=", 7, "fault is missing");
	is_no_plan("send:1=braek", 7, "braek is no fault");
	is_no_plan("send:1=errno", 7, "errno is no fault");
	is_no_plan("send:1=ENOSPC", 7, "ENOSPC is no fault");
	is_no_plan("send:1=EADDRINUSE", 7, "EADDRINUSE cannot happen at send");
	is_no_plan("send:1=refuse", 7, "refuse cannot happen at send");
	is_no_plan("wc:1=ENOMEM", 5, "ENOMEM cannot happen at wc");
	is_no_plan("mr_reg:1=break", 9, "break cannot happen at mr_reg");
	is_no_plan("send:1=break:", 13, "status of a failure is missing");
	is_no_plan("send:1=break:OK", 13, "OK is no status of a failure");
	is_no_plan("send:1=break:LOSST", 13, "LOSST is no status of a failure");
	is_no_plan("send:1=gone:1s", 11, "nothing can follow gone");
	is_no_plan("send:1=blind", 12, "how long blind takes is missing");
	is_no_plan("send:1=blind:5", 13, "5 is no time");
	is_no_plan("send:1=blind:0ms", 13, "0ms is no time");
	is_no_plan("send:1=blind:ms", 13, "ms is no time");
	is_no_plan("send:1=blind:3601s", 13, "this is more than an hour");
	is_no_plan("wc:1=delay:5h", 11, "5h is no time, and no number of polls");
	is_no_plan("event:1=delay:5", 14, "5 is no time");
	is_no_plan("send:1=break:FATAL:1", 18, "';' or the end should be here");
	is_no_plan("send:1=break send:2=break", 7, "break send is no fault");
	is_no_plan("seed:1", 4, "'=' is missing behind seed");
	is_no_plan("seed=x", 5, "x is no number");
}

static void a_plan_has_an_end(void **state)
{
	char text[RVCM_FAULT_RULES_MAX * 10 + 16] = "";
	struct rvcm_fault_complaint bad;

	(void)state;
	for (uint32_t i = 0; i < RVCM_FAULT_RULES_MAX; i++)
		strcat(text, i ? ";wc:1=gone" : "wc:1=gone");
	assert_int_equal(rvcm_fault_check(text, &bad), 0);
	strcat(text, ";wc:1=gone");
	is_no_plan(text, strlen(text) - 9, "there are more than 32 rules");
}

static void what_is_said_is_understood(void **state)
{
	struct rvcm_fault_plan plan;
	struct rvcm_fault_complaint bad;
	const struct rvcm_fault_rule *rules = plan.rules;

	(void)state;
	assert_int_equal(
		rvcm_fault_plan_parse("seed=7;send:100=break;recv:every:500=error:REMOTE_OP;"
				      "connect:2=timeout;wc:1/1000=delay:5ms;poll:1=pause:20;"
				      "mr_reg:3=ENOMEM;read:1=blind:2s",
				      &plan, &bad),
		0);
	assert_int_equal(plan.n_rules, 7);
	assert_int_equal(rules[0].point, RVCM_FAULT_SEND);
	assert_int_equal(rules[0].when, RVCM_FAULT_ONCE);
	assert_int_equal(rules[0].n, 100);
	assert_int_equal(rules[0].kind, RVCM_FAULT_BREAK);
	assert_int_equal(rules[0].status, RVCM_STATUS_CONNECTION_LOST);
	assert_int_equal(rules[1].when, RVCM_FAULT_EVERY);
	assert_int_equal(rules[1].kind, RVCM_FAULT_ERROR);
	assert_int_equal(rules[1].status, RVCM_STATUS_REMOTE_OP);
	assert_int_equal(rules[2].kind, RVCM_FAULT_TIMEOUT);
	assert_int_equal(rules[2].ns, 100000000);
	assert_int_equal(rules[3].when, RVCM_FAULT_CHANCE);
	assert_int_equal(rules[3].n, 1);
	assert_int_equal(rules[3].out_of, 1000);
	assert_int_equal(rules[3].ns, 5000000);
	assert_int_equal(rules[3].polls, 0);
	assert_int_equal(rules[4].ns, 0);
	assert_int_equal(rules[4].polls, 20);
	assert_int_equal(rules[5].kind, RVCM_FAULT_ERRNO);
	assert_int_equal(rules[5].err, ENOMEM);
	assert_int_equal(rules[6].ns, 2000000000);
}

#define AT(point) (1u << RVCM_FAULT_##point)

static void parse(struct rvcm_fault_plan *plan, const char *text)
{
	struct rvcm_fault_complaint bad;

	assert_int_equal(rvcm_fault_plan_parse(text, plan, &bad), 0);
}

static void each_point_is_counted_alone(void **state)
{
	struct rvcm_fault_plan plan;

	(void)state;
	parse(&plan, "send:2=gone;post:4=break");
	assert_null(rvcm_fault_plan_ask(&plan, AT(POST) | AT(SEND)));
	assert_null(rvcm_fault_plan_ask(&plan, AT(POST) | AT(WRITE)));
	assert_ptr_equal(rvcm_fault_plan_ask(&plan, AT(POST) | AT(SEND)), &plan.rules[0]);
	assert_null(rvcm_fault_plan_ask(&plan, AT(WC)));
	assert_ptr_equal(rvcm_fault_plan_ask(&plan, AT(POST) | AT(READ)), &plan.rules[1]);
	assert_null(rvcm_fault_plan_ask(&plan, AT(POST) | AT(SEND)));
}

static void every_nth_comes_again(void **state)
{
	struct rvcm_fault_plan plan;

	(void)state;
	parse(&plan, "wc:every:3=gone");
	for (int i = 1; i <= 30; i++)
		assert_int_equal(rvcm_fault_plan_ask(&plan, AT(WC)) != NULL, i % 3 == 0);
}

/* Which of 64 are hit, as bits. */
static uint64_t draw(const char *text)
{
	struct rvcm_fault_plan plan;
	uint64_t hits = 0;

	parse(&plan, text);
	for (int i = 0; i < 64; i++)
		hits |= (uint64_t)(rvcm_fault_plan_ask(&plan, AT(WC)) != NULL) << i;
	return hits;
}

static void chance_follows_the_seed(void **state)
{
	(void)state;
	assert_true(draw("wc:1/4=gone") == draw("seed=1;wc:1/4=gone"));
	assert_true(draw("wc:1/4=gone") != draw("seed=2;wc:1/4=gone"));
	assert_in_range(__builtin_popcountll(draw("wc:1/4=gone")), 4, 32);
	assert_true(draw("wc:3/3=gone") == UINT64_MAX);
}

static void the_empty_plan_does_nothing(void **state)
{
	struct rvcm_fault_complaint bad;

	(void)state;
	assert_int_equal(rvcm_fault_check(NULL, &bad), 0);
	assert_int_equal(rvcm_fault_check("", &bad), 0);
	assert_true(draw("") == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_is_told),
		cmocka_unit_test(a_plan_has_an_end),
		cmocka_unit_test(what_is_said_is_understood),
		cmocka_unit_test(each_point_is_counted_alone),
		cmocka_unit_test(every_nth_comes_again),
		cmocka_unit_test(chance_follows_the_seed),
		cmocka_unit_test(the_empty_plan_does_nothing),
	};

	return cmocka_run_group_tests_name("fault_plan", tests, NULL, NULL);
}
