import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Bed } from '../../bed/bed.js';
import { KUBEVIRT_NAMESPACE } from '../../bed/control-plane/kubevirt.js';
import { startBedWithHoldfast } from '../../bed/environment.js';
import { IPAM_EXTENSIONS_SRC } from '../../bed/ipam-extensions/program.js';
import { servePrimaryNetworks } from '../../bed/ovn-kubernetes/primary-networks.js';
import { KUBEVIRTS } from '../../kube/resources.js';
import { EDITS } from './edits.js';
import { buildSuite, writeVirtctl } from './suite.js';

/** Their pods get the address of a primary network from OVN-Kubernetes itself, which the bed does not have. */
const SKIPPED = ['primary UDN', 'Primary User Defined Network attachment'];

/** Runs the e2e tests of kubevirt/ipam-extensions against Holdfast on a bed. */
async function main(): Promise<number> {
  if (IPAM_EXTENSIONS_SRC === '') {
    throw new Error('set IPAM_EXTENSIONS_SRC to the folder of a checkout of kubevirt/ipam-extensions');
  }
  const bed = await startBedWithHoldfast((line) => console.log(line));
  try {
    await servePrimaryNetworks(bed);
    await registerBinding(bed);
    const suite = await buildSuite(bed.workDir);
    console.log('the tests of kubevirt/ipam-extensions are unchanged but for:');
    for (const { file, why } of EDITS) console.log(`  ${file}: ${why}`);
    console.log(`left out, because they need OVN-Kubernetes: ${SKIPPED.join(', ')}`);
    const path = `${await writeVirtctl(bed.workDir)}:${process.env.PATH ?? ''}`;
    const args = [
      ...process.argv.slice(2),
      '--ginkgo.v',
      '--ginkgo.no-color',
      '--test.timeout=30m',
      `--ginkgo.skip=${SKIPPED.join('|')}`,
    ];
    // the tests call kubectl only to save logs after a failure
    const env = { ...process.env, PATH: path, KUBECONFIG: bed.kubeconfig, KUBECTL: 'true' };
    const child = spawn(suite, args, { cwd: bed.workDir, env, stdio: ['ignore', 'inherit', 'inherit'] });
    const [code] = (await once(child, 'exit')) as [number | null];
    return code ?? 1;
  } finally {
    await bed.stop();
  }
}

/** The network binding of VMs on primary networks. The project's own cluster registers it too. */
async function registerBinding({ client }: Bed): Promise<void> {
  const binding = { l2bridge: { domainAttachmentType: 'managedTap', migration: {} } };
  const body = { spec: { configuration: { network: { binding } } } };
  const kubevirt = { namespace: KUBEVIRT_NAMESPACE, name: 'kubevirt' };
  await client.patch(KUBEVIRTS, kubevirt, { type: 'merge', body });
}

process.exitCode = await main();
