dnl SPDX-License-Identifier: BSD-2-Clause
dnl RVCM_WARNINGS: RVCM_CFLAGS for all code, RVCM_STRICT_CFLAGS for everything but tests.
AC_DEFUN([RVCM_WARNINGS], [
AC_ARG_ENABLE([developer],
	[AS_HELP_STRING([--enable-developer], [warnings are errors])], [], [enable_developer=no])
RVCM_CFLAGS="-std=gnu11 -fvisibility=hidden -pthread -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wimplicit-fallthrough"
dnl gcc 12 makes one store of two out of four instructions; what reads one of them waits for it.
RVCM_CFLAGS="$RVCM_CFLAGS -fno-tree-slp-vectorize"
AS_IF([test "x$enable_developer" = xyes], [RVCM_CFLAGS="$RVCM_CFLAGS -Werror"])
RVCM_STRICT_CFLAGS="-Wconversion"
AC_SUBST([RVCM_CFLAGS])
AC_SUBST([RVCM_STRICT_CFLAGS])
])
