dnl SPDX-License-Identifier: BSD-2-Clause
dnl RVCM_LIBFABRIC: FABRIC_CFLAGS and FABRIC_LIBS.  A provider must be linked with -lfabric: an unlinked fi_dupinfo binds
dnl to the oldest symbol version and corrupts attributes.
AC_DEFUN([RVCM_LIBFABRIC], [
AC_ARG_WITH([libfabric],
	[AS_HELP_STRING([--with-libfabric=PREFIX], [build against the libfabric installed below PREFIX])],
	[], [with_libfabric=system])
AS_IF([test "x$with_libfabric" = xno], [AC_MSG_ERROR([rvcm is a libfabric provider: it cannot be built without libfabric])])
AS_IF([test "x$with_libfabric" = xsystem || test "x$with_libfabric" = xyes],
	[FABRIC_CFLAGS= FABRIC_LIBS=-lfabric],
	[AS_IF([test -r "$with_libfabric/include/rdma/fabric.h"], [],
		[AC_MSG_ERROR([--with-libfabric=$with_libfabric: no include/rdma/fabric.h below it])])
	FABRIC_CFLAGS="-I$with_libfabric/include"
	FABRIC_LIBS="-L$with_libfabric/lib -Wl,-rpath,$with_libfabric/lib -lfabric"])
rvcm_save_CPPFLAGS=$CPPFLAGS rvcm_save_LIBS=$LIBS
CPPFLAGS="$CPPFLAGS $FABRIC_CFLAGS" LIBS="$FABRIC_LIBS $LIBS"
AC_CHECK_HEADER([rdma/providers/fi_prov.h], [],
	[AC_MSG_ERROR([libfabric's headers are missing: apt-get install libfabric-dev])])
AC_CHECK_FUNC([fi_dupinfo], [],
	[AC_MSG_ERROR([libfabric cannot be linked: apt-get install libfabric-dev])])
CPPFLAGS=$rvcm_save_CPPFLAGS LIBS=$rvcm_save_LIBS
AC_SUBST([FABRIC_CFLAGS])
AC_SUBST([FABRIC_LIBS])
])
