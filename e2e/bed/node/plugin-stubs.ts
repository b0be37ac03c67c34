import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Plugins of other people's networks, which stories name and the bed does not have. */
const STUBBED_PLUGINS = ['ovn-k8s-cni-overlay', 'ovs', 'sriov'] as const;

/**
 * Not the plugin that it is called by: it gives a pod an interface that leads to a bridge of the node and nowhere else, and no
 * address. Stories about these networks are about what Holdfast does with their claims; nothing is sent through them.
 */
const NETWORK_STUB = `#!/bin/sh
PATH=/usr/bin:/bin
version=$(sed -n 's/.*"cniVersion" *: *"\\([^"]*\\)".*/\\1/p' | head -n 1)
config='{"cniVersion":"'\${version:-1.0.0}'","name":"stand-in","type":"bridge","bridge":"stand-in0"}'
printf %s "$config" | "$(dirname "$0")/bridge"
`;

/** An IPAM that gives a pod the address that it asks for, and forgets it. Stories that move away from it write what it would have noted. */
const WHEREABOUTS_STUB = `#!/bin/sh
PATH=/usr/bin:/bin
exec "$(dirname "$0")/static"
`;

/** @param folder of CNI plugins, the real bridge and static among them */
export async function writePluginStubs(folder: string): Promise<void> {
  const standIns = [
    ...STUBBED_PLUGINS.map((name) => [name, NETWORK_STUB] as const),
    ['whereabouts', WHEREABOUTS_STUB] as const,
  ];
  await Promise.all(standIns.map(([name, script]) => writeFile(join(folder, name), script, { mode: 0o755 })));
}
