dnl SPDX-License-Identifier: BSD-2-Clause
dnl RVCM_RDMACM: librdmacm and libibverbs, for the program that the guest's kernel is tested with (fabtests/vm).  Without
dnl them the build goes on: only "make check-vm" needs it.
AC_DEFUN([RVCM_RDMACM], [
PKG_CHECK_MODULES([RDMACM], [librdmacm libibverbs], [have_rdmacm=yes],
	[have_rdmacm=no
	AC_MSG_NOTICE([no librdmacm: the guest's test program is not built (apt-get install librdmacm-dev)])])
AM_CONDITIONAL([HAVE_RDMACM], [test "$have_rdmacm" = yes])
])
