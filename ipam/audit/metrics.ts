import type { Metrics } from '../../process/metrics.js';

export interface AuditMetrics {
  written(lines: number): void;
  lost(lines: number): void;
  writeFailed(): void;
}

export function createAuditMetrics(metrics: Pick<Metrics, 'counter'>): AuditMetrics {
  const written = metrics.counter('audit_lines_total', 'Lines written to the audit log.');
  const lost = metrics.counter('audit_lines_lost_total', 'Lines of the audit log that are lost. The log says when.');
  const failures = metrics.counter('audit_write_failures_total', 'Failed writes of the audit log. They are repeated.');
  return {
    written: (lines) => written.inc(lines),
    lost: (lines) => lost.inc(lines),
    writeFailed: () => failures.inc(),
  };
}
