import { messageOf } from '../kube/errors.js';

const unhandled: unknown[] = [];

process.on('unhandledRejection', (reason) => void unhandled.push(reason));

/** What nobody handles ends Holdfast's processes; mocha by itself passes over it. */
export const mochaHooks = {
  afterEach(): void {
    const [reason] = unhandled.splice(0);
    if (reason !== undefined) throw new Error(`nobody handled: ${messageOf(reason)}`, { cause: reason });
  },
};
