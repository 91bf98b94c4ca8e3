dnl SPDX-License-Identifier: BSD-2-Clause
dnl RVCM_RDMACM: librdmacm and libibverbs, for RDMA devices (prov/rvcm/dev/verbs) and the programs that a guest's kernel is
dnl tested with (fabtests/vm); hwloc, which says where a NIC is, and libibumad, how an InfiniBand port does.  Without them
dnl the build goes on, and what it makes knows the software device only.
AC_DEFUN([RVCM_RDMACM], [
PKG_CHECK_MODULES([RDMACM], [librdmacm libibverbs libibumad hwloc], [have_rdmacm=yes],
	[have_rdmacm=no
	AC_MSG_NOTICE([without RDMA devices (apt-get install librdmacm-dev libibverbs-dev libibumad-dev libhwloc-dev)])])
AM_CONDITIONAL([HAVE_RDMACM], [test "$have_rdmacm" = yes])
])
