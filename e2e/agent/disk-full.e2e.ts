import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { until } from '../../bed/processes/wait.js';
import { AgentPods, NET1, pendingDeletesOn, runDirOf } from '../../bed/faults/agent-pods.js';
import { withAgentProxy } from '../../bed/faults/api-proxy.js';
import { PodObserver } from '../../bed/faults/pod-observer.js';
import { describeStory, itOnWire, type WireContext } from '../../bed/story/describe.js';

const NODE = 'node-1';
const run = promisify(execFile);

describeStory('While the disk of a node is full', (story) => {
  itOnWire(
    'pods get addresses, and no DEL is lost: it fails with the path of the file until there is space',
    async (on) => {
      const { bed, wire } = on;
      const pods = new AgentPods(story(), wire);
      // their notes would take the space
      await pods.untilAlone();
      const network = await story().addresses.createNetwork('blue', ['10.75.0.0/24']);
      const observer = new PodObserver(bed.client, { space: network, namespace: story().namespace });
      observer.start();
      const node = { ...on, node: NODE };
      await withAgentProxy(node, async ({ proxy }) => {
        await whileDiskIsFull(on, async ({ folder, makeRoom }) => {
          await pods.create('pod1', NODE);
          await pods.waitRunning('pod1');
          const [pod, config] = [await pods.get('pod1'), await pods.config('blue')];
          const call = { config, pod, ...wire.sandboxOf(pod), interfaceName: NET1 };
          proxy.disconnect();
          await pods.delete('pod1');
          const { exitCode, answer } = await wire.callPlugin(NODE, { ...call, verb: 'DEL' });
          expect({ exitCode, ...(answer as object) }).to.include({ exitCode: 1, code: 11 });
          expect(JSON.stringify(answer)).to.include(`cannot write ${folder}`).and.to.include('ENOSPC');
          expect(pendingDeletesOn(bed, NODE)).to.deep.equal([]);

          await makeRoom();
          await pods.waitGone('pod1');
          expect(pendingDeletesOn(bed, NODE)).to.have.length(1);
          proxy.reconnect();
          await until('the DEL to be carried out', () => pendingDeletesOn(bed, NODE).length === 0);
          await story().addresses.waitHeld([]);
        });
      });
      expect(await observer.stop()).to.deep.equal([]);
    },
  );
});

/** Replaces the folder of pending deletes by a full file system. */
async function whileDiskIsFull(
  { bed }: WireContext,
  tell: (disk: { folder: string; makeRoom: () => Promise<void> }) => Promise<void>,
): Promise<void> {
  const folder = join(runDirOf(bed, NODE), 'deletions');
  const filler = join(folder, 'filler');
  await mkdir(folder, { recursive: true });
  await run('mount', ['-t', 'tmpfs', '-o', 'size=4k,mode=700', 'none', folder]);
  try {
    await writeFile(filler, Buffer.alloc(4_096));
    await tell({ folder, makeRoom: () => rm(filler) });
  } finally {
    await run('umount', [folder]);
  }
}
