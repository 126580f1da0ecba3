# SPDX-License-Identifier: Apache-2.0
# Completion of cubefs for fish.

function __cubefs_mounts
    string match ' - fuse.cubefs ' --entire </proc/self/mountinfo | while read -l line
        printf '%b\n' (string replace -a '\\0' '\\00' (string split ' ' $line)[5])
    end
end

function __cubefs_sandboxes
    set -l mount $CUBEFS_MOUNT
    if test -z "$mount"
        set mount (__cubefs_mounts)
        test (count $mount) -eq 1; or return
    end
    string split -f 1 ' ' <$mount/list 2>/dev/null
end

set -l commands umount upgrade doctor sh top
complete -c cubefs -n "not __fish_seen_subcommand_from $commands" -a umount -d 'end the daemon of a mount'
complete -c cubefs -n "not __fish_seen_subcommand_from $commands" -a upgrade -d 'this program takes over a mount'
complete -c cubefs -n "not __fish_seen_subcommand_from $commands" -a doctor -d 'check this machine and every backend'
complete -c cubefs -n "not __fish_seen_subcommand_from $commands" -a sh -d 'a shell or a command in a sandbox'
complete -c cubefs -n "not __fish_seen_subcommand_from $commands" -a top -d 'what the sandboxes do, live'
complete -c cubefs -n "not __fish_seen_subcommand_from $commands" -s f -l foreground -d 'stay in the foreground'
complete -c cubefs -n "not __fish_seen_subcommand_from umount upgrade sh top" -l config -rF -d 'configuration'
complete -c cubefs -n "not __fish_seen_subcommand_from umount upgrade sh top" -l state -rF -d 'where sandboxes live'
complete -c cubefs -n "not __fish_seen_subcommand_from $commands" -l 9p -x -a 'unix: tcp:127.0.0.1: tls: stdio' -d 'serve 9P'
complete -c cubefs -n "not __fish_seen_subcommand_from $commands" -l 9p-token-file -rF -d 'what clients must know'
complete -c cubefs -n "not __fish_seen_subcommand_from $commands" -s o -x -a 'allow_other symlinks=raw owners=raw nonempty debug'
complete -c cubefs -n "not __fish_seen_subcommand_from $commands" -s h -l help -d usage
complete -c cubefs -n "not __fish_seen_subcommand_from $commands" -s V -l version -d version
complete -c cubefs -f -n "__fish_seen_subcommand_from umount upgrade top" -a '(__cubefs_mounts)'
complete -c cubefs -f -n "__fish_seen_subcommand_from sh" -a '(__cubefs_sandboxes)'
complete -c cubefs -n "__fish_seen_subcommand_from top" -s b -d 'print the table once'
complete -c cubefs -n "__fish_seen_subcommand_from top" -s d -x -d 'seconds between two readings'
