/* cli/notify.h - tells systemd how a service of Type=notify is doing. */
#ifndef NIB_CLI_NOTIFY_H
#define NIB_CLI_NOTIFY_H

/* Sends "READY=1" or the like to the socket that NOTIFY_SOCKET names; does nothing when it names none. */
void nib_cli_notify(const char *state);

#endif
