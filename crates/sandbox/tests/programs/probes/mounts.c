/* Mounts: the view of the files is made of them, so none may be changed. */
#include "common.h"

/* ENODEV (unknown file system) comes after the permission check. */
void mount_probe(char **arg)
{
    attempt("mount", syscall(SYS_mount, "none", ".", "no-such-filesystem", 0UL, NULL), ONLY_DENIALS);
}

/* Taking a mount away shows what it covers. "." is EINVAL (no mount) or EBUSY
 * (we are in it) for whoever may unmount; it never goes. */
void umount_probe(char **arg)
{
    attempt("umount2", syscall(SYS_umount2, ".", 0), ONLY_DENIALS);
}

/* Not with "." twice: that is the form that works. */
void pivot_root_probe(char **arg)
{
    attempt("pivot_root", syscall(SYS_pivot_root, NOWHERE, NOWHERE), ONLY_DENIALS);
}

/* With chroot one leaves an earlier chroot. Ends with this process. */
void chroot_probe(char **arg)
{
    attempt("chroot", chroot("/"), ONLY_DENIALS);
}

/* A cloned mount tree is a second way into the files; closing dissolves it. */
void open_tree_probe(char **arg)
{
    attempt("open_tree(CLONE)", syscall(SYS_open_tree, AT_FDCWD, ".", 1 /* OPEN_TREE_CLONE */ | O_CLOEXEC), ONLY_DENIALS);
}

/* File system drivers parse what we feed them, in the kernel. */
void fsopen_probe(char **arg)
{
    attempt("fsopen", syscall(SYS_fsopen, "tmpfs", 1 /* FSOPEN_CLOEXEC */), ONLY_DENIALS);
}

void move_mount_probe(char **arg)
{
    attempt("move_mount", syscall(SYS_move_mount, -1, "", -1, "", 0x44 /* both paths empty */), ONLY_DENIALS);
}

/* Would turn our read-only mounts writable. All zero asks for no change. */
void mount_setattr_probe(char **arg)
{
    uint64_t nothing[4] = {0};
    attempt("mount_setattr", syscall(SYS_mount_setattr, AT_FDCWD, ".", 0, nothing, sizeof nothing), ONLY_DENIALS);
}
