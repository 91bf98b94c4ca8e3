dnl SPDX-License-Identifier: BSD-2-Clause
dnl RVCM_SANITIZE: --enable-sanitize=address,undefined builds product and tests with these sanitizers.
AC_DEFUN([RVCM_SANITIZE], [
AC_ARG_ENABLE([sanitize],
	[AS_HELP_STRING([--enable-sanitize=LIST], [build with the compiler's sanitizers, for example address,undefined])],
	[], [enable_sanitize=no])
AS_CASE([$enable_sanitize],
	[no], [],
	[yes], [RVCM_SANITIZE_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all"],
	[RVCM_SANITIZE_FLAGS="-fsanitize=$enable_sanitize -fno-sanitize-recover=all"])
AC_SUBST([RVCM_SANITIZE_FLAGS])
AM_CONDITIONAL([SANITIZED], [test "x$enable_sanitize" != xno])
])
