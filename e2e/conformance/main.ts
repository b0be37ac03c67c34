import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { startBedWithHoldfast } from '../environment.js';
import { IPAM_EXTENSIONS_SRC } from '../ipam-extensions/program.js';
import { EDITS } from './edits.js';
import { buildSuite, writeVirtctl } from './suite.js';

/** Their pods get the address of a primary network from OVN-Kubernetes itself, which the bed does not have. */
const SKIPPED = ['primary UDN', 'Primary User Defined Network'];

/** Runs the e2e tests of kubevirt/ipam-extensions against Holdfast on a bed. */
async function main(): Promise<number> {
  if (IPAM_EXTENSIONS_SRC === '') {
    throw new Error('set IPAM_EXTENSIONS_SRC to the folder of a checkout of kubevirt/ipam-extensions');
  }
  const bed = await startBedWithHoldfast((line) => console.log(line));
  try {
    const suite = await buildSuite(bed.workDir);
    console.log('the tests of kubevirt/ipam-extensions are unchanged but for:');
    for (const { file, why } of EDITS) console.log(`  ${file}: ${why}`);
    console.log(`left out, because they need OVN-Kubernetes: ${SKIPPED.join(', ')}`);
    const path = `${await writeVirtctl(bed.workDir)}:${process.env.PATH ?? ''}`;
    const args = ['--ginkgo.v', '--ginkgo.no-color', '--test.timeout=30m', `--ginkgo.skip=${SKIPPED.join('|')}`];
    // the tests call kubectl only to save logs after a failure
    const env = { ...process.env, PATH: path, KUBECONFIG: bed.kubeconfig, KUBECTL: 'true' };
    const child = spawn(suite, args, { cwd: bed.workDir, env, stdio: ['ignore', 'inherit', 'inherit'] });
    const [code] = (await once(child, 'exit')) as [number | null];
    return code ?? 1;
  } finally {
    await bed.stop();
  }
}

process.exitCode = await main();
