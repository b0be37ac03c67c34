import { Client } from '../client.js';
import { systemClock } from '../clock.js';
import { describeApiContract } from './api-contract.js';
import { MemoryTransport } from './memory-transport.js';
import { ObjectTracker } from './object-tracker.js';

/** Watches last only a hundredth of their time. */
const FAST_CLOCK = { ...systemClock, setTimer: (ms: number, run: () => void) => systemClock.setTimer(ms / 100, run) };

describe('On the API server in memory,', () => {
  const client = new Client(new MemoryTransport(new ObjectTracker(), FAST_CLOCK));
  describeApiContract(() => client);
});
