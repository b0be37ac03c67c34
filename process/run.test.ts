import { EventEmitter } from 'node:events';
import { expect } from 'chai';
import type { Clock } from '../kube/clock.js';
import { silentLogger } from '../kube/log.js';
import type { Component } from './context.js';
import type { ReadinessCheck } from './probes.js';
import { runProcess } from './run.js';

const never = () => new Promise<void>(() => undefined);
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A clock whose sleeps end when the test says so, or when they are aborted. */
class HeldClock implements Clock {
  readonly sleeps: { ms: number; end: () => void }[] = [];
  now = () => 0;
  wall = () => 0;
  setTimer = () => () => undefined;
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((end) => {
      this.sleeps.push({ ms, end });
      signal?.addEventListener('abort', () => end(), { once: true });
    });
  }
}

class Run {
  readonly host = new EventEmitter();
  readonly clock = new HeldClock();
  readonly history: string[] = [];
  readonly code: Promise<number>;
  /** Reports an error of what the components share. */
  fail: (error: unknown) => void = () => undefined;
  checks: readonly ReadinessCheck[] = [];

  constructor(make: (part: Run['part']) => Component[], serve: () => Promise<void> = () => Promise.resolve()) {
    this.code = runProcess({
      components: make((name, overrides) => this.part(name, overrides)),
      log: silentLogger,
      clock: this.clock,
      signals: this.host,
      onFatal: (fail) => (this.fail = fail),
      closeShared: () => this.#note('shared closed'),
      serveChecks: async (checks) => {
        await serve();
        this.checks = checks;
        await this.#note('served');
        return { close: () => this.#note('served no more') };
      },
    });
  }

  part(name: string, overrides: Partial<Component> = {}): Component {
    return {
      name,
      start: () => this.#note(`${name} started`),
      stop: () => this.#note(`${name} stopped`),
      ...overrides,
    };
  }

  failures(): string[] {
    return this.checks.flatMap((check) => check.run() ?? []);
  }

  #note(what: string): Promise<void> {
    this.history.push(what);
    return Promise.resolve();
  }
}

describe('runProcess', () => {
  it('serves probes, starts all components, and stops them before what they share', async () => {
    const run = new Run((part) => [part('a'), part('b')]);
    await turn();
    expect(run.history).to.deep.equal(['served', 'a started', 'b started']);
    run.host.emit('SIGTERM', 'SIGTERM');
    expect(await run.code).to.equal(0);
    expect(run.history.slice(3)).to.deep.equal(['a stopped', 'b stopped', 'shared closed', 'served no more']);
  });

  it('does not delay other components for one that starts slowly', async () => {
    const run = new Run((part) => [part('slow', { start: never }), part('b')]);
    await turn();
    expect(run.history).to.include('b started');
    run.host.emit('SIGINT', 'SIGINT');
    expect(await run.code).to.equal(0);
  });

  it('is ready if every component is ready, and not ready while it stops', async () => {
    const run = new Run((part) => [part('a', { ready: () => 'no caches', stop: never }), part('b')]);
    await turn();
    expect(run.failures()).to.deep.equal(['no caches']);
    run.host.emit('SIGTERM', 'SIGTERM');
    await turn();
    expect(run.failures()).to.deep.equal(['no caches', 'stopping']);
    run.host.emit('SIGTERM', 'SIGTERM');
    await run.code;
  });

  it('stops all components and fails if one cannot start', async () => {
    const run = new Run((part) => [part('a', { start: () => Promise.reject(new Error('no')) }), part('b')]);
    expect(await run.code).to.equal(1);
    expect(run.history).to.include.members(['a stopped', 'b stopped', 'shared closed']);
  });

  it('fails if the probes cannot be served', async () => {
    const run = new Run(
      () => [],
      () => Promise.reject(new Error('address in use')),
    );
    expect(await run.code).to.equal(1);
  });

  for (const fault of ['unhandledRejection', 'uncaughtException']) {
    it(`stops and fails on an ${fault}`, async () => {
      const run = new Run((part) => [part('a')]);
      await turn();
      run.host.emit(fault, new Error('a bug'));
      expect(await run.code).to.equal(1);
      expect(run.history).to.include('a stopped');
    });
  }

  it('stops and fails if what the components share cannot continue', async () => {
    const run = new Run((part) => [part('a')]);
    await turn();
    run.fail(new Error('etcd was restored'));
    expect(await run.code).to.equal(1);
    expect(run.history).to.include('a stopped');
  });

  it('stops and fails if a component says after its start that only a restart repairs it', async () => {
    let fail: (error: unknown) => void = () => undefined;
    const run = new Run((part) => [part('a', { onFatal: (given) => (fail = given) }), part('b')]);
    await turn();
    fail(new Error('the socket is gone'));
    expect(await run.code).to.equal(1);
    expect(run.history).to.include.members(['a stopped', 'b stopped']);
  });

  it('stops the other components if one cannot stop', async () => {
    const run = new Run((part) => [part('a', { stop: () => Promise.reject(new Error('no')) }), part('b')]);
    await turn();
    run.host.emit('SIGTERM', 'SIGTERM');
    await run.code;
    expect(run.history).to.include.members(['b stopped', 'shared closed']);
  });

  it('ends at once on a second signal', async () => {
    const run = new Run((part) => [part('a', { stop: never })]);
    await turn();
    run.host.emit('SIGTERM', 'SIGTERM');
    run.host.emit('SIGINT', 'SIGINT');
    expect(await run.code).to.equal(1);
  });

  it('ends after 25 seconds if a component does not stop', async () => {
    const run = new Run((part) => [part('a', { stop: never })]);
    await turn();
    run.host.emit('SIGTERM', 'SIGTERM');
    await turn();
    expect(run.clock.sleeps.map(({ ms }) => ms)).to.deep.equal([25_000]);
    run.clock.sleeps[0]?.end();
    expect(await run.code).to.equal(1);
  });

  it('removes its listeners when it ends', async () => {
    const run = new Run(() => []);
    await turn();
    run.host.emit('SIGTERM', 'SIGTERM');
    await run.code;
    expect(run.host.eventNames()).to.deep.equal([]);
  });
});
