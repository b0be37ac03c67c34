import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from '../../test/image/container.js';

/** A command line. */
export interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

/** Names the cgroups of one cluster: `holdfast-bed-PID`, with a process of the machine that lives as long as the cluster. */
const CGROUP_PREFIX = 'HOLDFAST_BED_CGROUP';

/** A shell function that removes a cgroup with all in it. $2: how often it tries, because processes that were killed may still end. */
export const REMOVE_CGROUP = `
remove_cgroup() {
  tries=\${2:-1}
  until [ ! -d "$1" ] || find "$1" -depth -type d -exec rmdir {} + 2>/dev/null; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || return 1
    sleep 0.1
  done
}`;

/** The folder of temporary files in {@link isolated}, by the process that it starts. */
export function temporaryFolderOf(pid: number): string {
  return join(tmpdir(), `holdfast-real-${String(pid)}`);
}

/**
 * Removes cgroups and temporary files of clusters whose process is gone, and at the end those of this one: a bed that is killed inside cannot.
 * The logs of a failure stay until then.
 * `unshare` passes no signals on, and a shell's background command would ignore SIGINT.
 * All processes inside die with process 1 there, which dies with `unshare`, which dies with this shell.
 */
const ENTER = `${REMOVE_CGROUP}
is_gone() { [ "$1" = $$ ] || [ ! -d "/proc/$1" ]; }
for folder in /sys/fs/cgroup/holdfast-bed-* /sys/fs/cgroup/*/holdfast-bed-*; do
  owner=\${folder##*/holdfast-bed-}
  ! is_gone "\${owner%%-*}" || remove_cgroup "$folder" || true
done
for folder in "\${TMPDIR:-/tmp}"/holdfast-real-*; do
  ! is_gone "\${folder##*-}" || rm -rf "$folder" || true
done
export TMPDIR="\${TMPDIR:-/tmp}/holdfast-real-$$"
mkdir -m 700 "$TMPDIR"
export ${CGROUP_PREFIX}=holdfast-bed-$$
env --default-signal=INT,QUIT setpriv --pdeathsig KILL unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private sh -euc '
  ip link set lo up
  mkdir -p /run/netns
  mount -t tmpfs tmpfs /run/netns
  exec "$@"
' sh "$@" <&0 &
unshare=$!
trap 'kill -INT $(cat "/proc/$unshare/task/$unshare/children")' INT TERM
status=0
while [ -d "/proc/$unshare" ]; do
  status=0
  wait "$unshare" || status=$?
done
for folder in /sys/fs/cgroup/holdfast-bed-$$-* /sys/fs/cgroup/*/holdfast-bed-$$-*; do remove_cgroup "$folder" || true; done
case $status in
  0 | 130) rm -rf "$TMPDIR" ;;
  *)
    for log in "$TMPDIR"/*/data/nodes/*/var/log/*.log; do
      node=\${log%/var/log/*}
      mv "$log" "\${node%/data/nodes/*}/logs/\${node##*/}-\${log##*/}" 2>/dev/null || true
    done
    rm -rf "$TMPDIR"/*/data; find "$TMPDIR" -type d -empty -delete
    ;;
esac
exit "$status"
`;

/** Why this machine cannot run real nodes; undefined if it can. */
export function reasonAgainstRealNodes(): string | undefined {
  if (process.platform !== 'linux') return 'real nodes need Linux';
  if (process.getuid?.() !== 0) return 'real nodes need root';
  const missing = ['unshare', 'nsenter', 'setpriv', 'ip', 'apt-get', 'dpkg-deb'].filter(
    (name) => findProgram(name) === '',
  );
  if (missing.length > 0) return `real nodes need ${missing.join(', ')}`;
  const probe = spawnSync('unshare', ['--net', '--mount', '--pid', '--fork', 'true'], { encoding: 'utf8' });
  if (probe.status !== 0) return `real nodes need namespaces: ${probe.stderr.trim()}`;
  if (!existsSync('/sys/fs/cgroup/memory') && !existsSync('/sys/fs/cgroup/cgroup.controllers'))
    return 'real nodes need cgroups in /sys/fs/cgroup';
  return undefined;
}

/**
 * The command in network, mount and process namespaces of its own. Real nodes run in them and end with the command, and nobody
 * else reaches what listens on all addresses.
 */
export function isolated({ command, args }: Command): Command {
  return { command: 'sh', args: ['-euc', ENTER, 'sh', command, ...args] };
}

/** The prefix of this cluster's cgroups. @throws {Error} outside of {@link isolated} */
export function cgroupPrefix(): string {
  const prefix = process.env[CGROUP_PREFIX];
  if (prefix === undefined)
    throw new Error('real nodes run only in namespaces of their own: bed/real-nodes/isolation.ts');
  return prefix;
}
