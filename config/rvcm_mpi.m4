dnl SPDX-License-Identifier: BSD-2-Clause
dnl RVCM_MPI: MPICC, for the MPI programs below fabtests/mpi.  Without it the build goes on: only the jobs need them.
AC_DEFUN([RVCM_MPI], [
AC_ARG_VAR([MPICC], [Open MPI's compiler command, for the test programs])
AC_CHECK_PROGS([MPICC], [mpicc])
AS_IF([test -z "$MPICC"],
	[AC_MSG_NOTICE([no mpicc: MPI test programs are not built (apt-get install libopenmpi-dev openmpi-bin)])])
AM_CONDITIONAL([HAVE_MPI], [test -n "$MPICC"])
])
