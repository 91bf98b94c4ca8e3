dnl SPDX-License-Identifier: BSD-2-Clause
dnl RVCM_CMOCKA: the unit tests' library.
AC_DEFUN([RVCM_CMOCKA], [
PKG_CHECK_MODULES([CMOCKA], [cmocka], [],
	[AC_MSG_ERROR([cmocka is missing: apt-get install libcmocka-dev])])
])
