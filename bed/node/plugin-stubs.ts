import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Plugins that NADs of tests name, and that the bed does not have. */
const STUBBED_PLUGINS = ['ovn-k8s-cni-overlay', 'ovs', 'sriov'] as const;

/**
 * Gives a pod an interface on an isolated bridge of the node, without an address. Tests with these networks only check claims, and
 * send no packets.
 */
const NETWORK_STUB = `#!/bin/sh
PATH=/usr/bin:/bin
version=$(sed -n 's/.*"cniVersion" *: *"\\([^"]*\\)".*/\\1/p' | head -n 1)
config='{"cniVersion":"'\${version:-1.0.0}'","name":"stand-in","type":"bridge","bridge":"stand-in0"}'
printf %s "$config" | "$(dirname "$0")/bridge"
`;

/** An IPAM that gives a pod the address it requests, without a record. Tests of a migration from whereabouts write the records. */
const WHEREABOUTS_STUB = `#!/bin/sh
PATH=/usr/bin:/bin
exec "$(dirname "$0")/static"
`;

/** @param folder of CNI plugins, which contains the real bridge and static */
export async function writePluginStubs(folder: string): Promise<void> {
  const standIns = [
    ...STUBBED_PLUGINS.map((name) => [name, NETWORK_STUB] as const),
    ['whereabouts', WHEREABOUTS_STUB] as const,
  ];
  await Promise.all(standIns.map(([name, script]) => writeFile(join(folder, name), script, { mode: 0o755 })));
}
