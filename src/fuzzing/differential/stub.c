/* A program that does nothing but record that it was started: its directory, its own name and its arguments, appended to
   the file `log` beside its own directory. `pf` fails, `po` prints a line. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char record[1 << 16];

int main(int argc, char **argv)
{
    char log[4096], cwd[4096];
    ssize_t length = readlink("/proc/self/exe", log, sizeof log - 8);
    if (length <= 0)
        return 125;
    log[length] = 0;
    /* Not argv[0], which the caller chooses. */
    char own[256];
    snprintf(own, sizeof own, "%s", strrchr(log, '/') + 1);
    for (int up = 0; up < 2; up++)
        *strrchr(log, '/') = 0;
    strcat(log, "/log");
    if (!getcwd(cwd, sizeof cwd))
        strcpy(cwd, "?");
    size_t used = (size_t)snprintf(record, sizeof record, "P%c%d%c%s%c", 0, argc, 0, cwd, 0);
    for (int i = 0; i < argc; i++) {
        const char *word = i ? argv[i] : own;
        size_t size = strlen(word) + 1;
        if (used + size > sizeof record)
            return 125;
        memcpy(record + used, word, size);
        used += size;
    }
    int file = open(log, O_WRONLY | O_APPEND);
    if (file < 0 || write(file, record, used) != (ssize_t)used)
        return 125;
    if (!strcmp(own, "po"))
        return write(1, "out put\n", 8) != 8;
    return !strcmp(own, "pf");
}
