import { describe, it } from 'mocha';
import type { BedWire } from '../node/bed-wire.js';
import { type BedWithHoldfast, onBed } from '../environment.js';
import type { Agents } from '../holdfast/agents.js';
import { messageOf } from '../../kube/errors.js';
import { environment } from './hooks.js';
import { reportNamespace } from './namespace-report.js';
import { Story } from './story.js';

/** A suite in which each test has its own story, that is, its own namespace. */
export function describeStory(title: string, define: (story: () => Story) => void): void {
  describe(title, () => {
    let current: Story | undefined;
    beforeEach('create a namespace', async () => {
      current = await Story.begin(environment());
    });
    afterEach('report on the namespace of a failed test', async function () {
      if (!this.currentTest?.isFailed() || current === undefined) return;
      const report = await reportNamespace(environment(), current.namespace).catch(messageOf);
      process.stderr.write(`${report}\n`);
    });
    afterEach('delete the namespace', async () => {
      environment().bed?.switches.clear();
      await current?.end();
    });
    define(() => {
      if (current === undefined) throw new Error('a story exists only inside a test');
      return current;
    });
  });
}

/** A test that needs a switch of the bed. On another cluster it is skipped. */
export function itOnBed(title: string, run: (bed: BedWithHoldfast) => Promise<void>): void {
  it(title, async function () {
    const { bed } = environment();
    if (bed === undefined) this.skip();
    else await run(bed);
  });
}

/** A bed whose pods have real networks. */
export interface WireContext {
  readonly bed: BedWithHoldfast;
  readonly wire: BedWire;
  readonly agents: Agents;
}

/** Skips a test if pods have no real networks, which not every machine allows. */
export function requireWire(test: Mocha.Context): WireContext {
  const { bed } = environment();
  if (bed?.wire === undefined || bed.agents === undefined) return test.skip();
  return { bed, wire: bed.wire, agents: bed.agents };
}

/** A test that needs real pod networks. Elsewhere it is skipped. */
export function itOnWire(title: string, run: (on: WireContext) => Promise<void>): void {
  it(title, async function () {
    await run(requireWire(this));
  });
}

/** A suite in which every test needs the bed. */
export function describeOnBed(title: string, define: (story: () => Story, bed: () => BedWithHoldfast) => void): void {
  if (!onBed) return;
  describeStory(title, (story) => {
    define(story, () => {
      const { bed } = environment();
      if (bed === undefined) throw new Error('there is no bed');
      return bed;
    });
  });
}
