dnl SPDX-License-Identifier: BSD-2-Clause
dnl RVCM_FUZZ: --enable-fuzz builds the fuzzers (clang's libFuzzer) and everything under ASan and UBSan.
AC_DEFUN([RVCM_FUZZ], [
AC_ARG_ENABLE([fuzz],
	[AS_HELP_STRING([--enable-fuzz], [build the fuzzers and a target fuzz that runs them (CC=clang)])],
	[], [enable_fuzz=no])
RVCM_FUZZ_FLAGS=
AS_IF([test "x$enable_fuzz" = xyes], [
	AC_MSG_CHECKING([whether $CC has libFuzzer])
	RVCM_FUZZ_FLAGS="-fsanitize=fuzzer,address,undefined"
	rvcm_saved_cflags=$CFLAGS
	CFLAGS="$CFLAGS $RVCM_FUZZ_FLAGS"
	AC_LINK_IFELSE([AC_LANG_SOURCE([[
		int LLVMFuzzerTestOneInput(const unsigned char *p, unsigned long n);
		int LLVMFuzzerTestOneInput(const unsigned char *p, unsigned long n) { return p && !n; }]])],
		[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		AC_MSG_ERROR([--enable-fuzz needs clang and its runtime: apt-get install clang libclang-rt-14-dev, then configure with CC=clang])])
	CFLAGS=$rvcm_saved_cflags
	RVCM_SANITIZE_FLAGS="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
])
AC_SUBST([RVCM_FUZZ_FLAGS])
AM_CONDITIONAL([FUZZ], [test "x$enable_fuzz" = xyes])
])
