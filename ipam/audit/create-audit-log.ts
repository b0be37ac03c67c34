import type { AuditConfig } from '../../process/config/ipam-config.js';
import type { ProcessContext } from '../../process/context.js';
import { AuditLog, type AuditLogOptions, createAuditMetrics } from './audit-log.js';
import { type AuditSink, FileSink } from './audit-sink.js';
import { write } from 'node:fs';
import { promisify } from 'node:util';
import type { Clock } from '../../kube/clock.js';

/** @returns undefined if the configuration names no audit log */
export function createAuditLog(
  { auditLog, auditMaxMiB, auditMaxFiles }: AuditConfig,
  leases: AuditLogOptions['leases'],
  { clock, log, metrics }: Pick<ProcessContext, 'clock' | 'log' | 'metrics'>,
): AuditLog | undefined {
  const auditMetrics = createAuditMetrics(metrics);
  if (auditLog === undefined) return undefined;
  const sink =
    auditLog === '-'
      ? new StdoutSink(clock)
      : new FileSink({ path: auditLog, maxBytes: auditMaxMiB * 1024 * 1024, maxFiles: auditMaxFiles });
  return new AuditLog({ leases, sink, clock, log, metrics: auditMetrics });
}

const STDOUT = 1;
const RETRY_MS = 50;
const writeTo = promisify(write);

/**
 * Writes to standard output in a thread of its own: `process.stdout` would wait in the event loop for a slow reader. The kernel writes batches of this
 * size to a pipe as a whole, so lines do not mix with those of the process's log.
 */
export class StdoutSink implements AuditSink {
  readonly batchBytes = 4_096;
  readonly #clock: Pick<Clock, 'sleep'>;
  readonly #fd: number;

  constructor(clock: Pick<Clock, 'sleep'>, fd = STDOUT) {
    this.#clock = clock;
    this.#fd = fd;
  }

  async write(lines: string): Promise<void> {
    let rest = Buffer.from(lines);
    while (rest.length > 0) {
      try {
        const { bytesWritten } = await writeTo(this.#fd, rest);
        rest = rest.subarray(bytesWritten);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
        await this.#clock.sleep(RETRY_MS);
      }
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
