import { PODS } from '../../kube/resources.js';
import { untilValue } from '../../bed/processes/wait.js';
import { describeOnNodes } from '../../bed/story/nodes.js';

const FIND_NOTES = ['find', '/run/holdfast/guards', '-name', 'holdfast_*', '-o', '-name', '.note-*'] as const;
const ROUNDS = 2;
const PODS_A_ROUND = 5;

describeOnNodes('Guards of pods that start and end together on a real node', (story, nodes) => {
  it('have a note for each interface that exists, and none after the last pod', async function () {
    this.timeout(300_000);
    await nodes().createNetwork('blue', ['10.88.1.0/26'], { guard: { mode: 'Enforce' } });
    const networks = [{ name: 'blue' }, { name: 'blue' }];
    const node = nodes().node(nodes().names[0]);
    const waitNotes = (count: number) =>
      untilValue(
        `${count} notes`,
        () => node.run(...FIND_NOTES),
        (found) => found.split('\n').filter((line) => line !== '').length === count,
        { timeoutMs: 60_000 },
      );
    const end = (names: readonly string[]) =>
      Promise.all(names.map((name) => story().client.delete(PODS, story().ref(name))));
    let running: readonly string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const names = Array.from({ length: PODS_A_ROUND }, (_, index) => `pod-${round}-${index}`);
      const ended = end(running);
      await Promise.all(names.map((name) => nodes().requestPod(name, { networks, node: node.name })));
      await Promise.all([ended, ...names.map((name) => nodes().waitReady(name))]);
      running = names;
      await waitNotes(networks.length * names.length);
    }
    await end(running);
    await waitNotes(0);
  });
});
