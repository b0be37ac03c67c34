import { expect } from 'chai';
import { abortable } from './deadline.js';

function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

/** What nobody handles ends a process. */
async function unhandledIn(act: () => Promise<unknown>): Promise<unknown[]> {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  const others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', note);
  try {
    await act();
    // Node tells of them once a turn is over
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off('unhandledRejection', note);
    for (const other of others) process.on('unhandledRejection', other);
  }
  return unhandled;
}

describe('unlessAborted', () => {
  const failing = () => new Promise<never>((_resolve, reject) => setImmediate(() => reject(new Error('late'))));

  it('resolves like the promise', async () => {
    expect(await abortable(Promise.resolve(1), new AbortController().signal)).to.equal(1);
    expect(await errorOf(abortable(failing(), new AbortController().signal))).to.have.property('message', 'late');
  });

  it("rejects with the signal's reason if the signal aborts before or after the call", async () => {
    const reason = new Error('enough');
    expect(await errorOf(abortable(failing(), AbortSignal.abort(reason)))).to.equal(reason);
    const controller = new AbortController();
    const refused = errorOf(abortable(failing(), controller.signal));
    controller.abort(reason);
    expect(await refused).to.equal(reason);
  });

  it('causes no unhandled rejection if the promise fails after the signal aborted', async () => {
    const unhandled = await unhandledIn(async () => {
      await errorOf(abortable(failing(), AbortSignal.abort()));
      await failing().catch(() => undefined);
    });
    expect(unhandled).to.deep.equal([]);
  });
});
