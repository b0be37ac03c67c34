import { messageOf } from '../../kube/errors.js';

const unhandled: unknown[] = [];

process.on('unhandledRejection', (reason) => void unhandled.push(reason));

/** An unhandled rejection ends the processes of Holdfast, but mocha ignores it by default. */
export const mochaHooks = {
  afterEach(): void {
    const [reason] = unhandled.splice(0);
    if (reason !== undefined) throw new Error(`nobody handled: ${messageOf(reason)}`, { cause: reason });
  },
};
