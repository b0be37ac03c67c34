import type { AuditConfig } from '../../process/audit-config.js';
import type { ProcessContext } from '../../process/context.js';
import { AuditLog, type AuditLogOptions } from './audit-log.js';
import { FileSink } from './file-sink.js';
import { createAuditMetrics } from './metrics.js';
import { StdoutSink } from './stdout-sink.js';

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
