import { startBedWithHoldfast } from '../bed/environment.js';
import { Story } from '../bed/story/story.js';
import type { Figure } from './report.js';

/** Measures a second bed, with built binaries, from its start to the first VM that runs with a persistent address. */
export async function benchBed(): Promise<Figure[]> {
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1000;
  const bed = await startBedWithHoldfast(() => undefined);
  try {
    const ready = seconds();
    const { client, kubeconfig } = bed;
    const story = await Story.begin({ client, kubeconfig, bed, stop: () => bed.stop() });
    await story.network('blue');
    await story.createVm('first', { data: 'blue' });
    await story.waitRunning('first');
    return [
      { name: 'bed: ready, with Holdfast, after', value: ready, unit: 's' },
      { name: 'bed: first VM runs after', value: seconds(), unit: 's', target: { atMost: 30 } },
    ];
  } finally {
    await bed.stop();
  }
}
