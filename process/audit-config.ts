import { type Settings, parseText, wholeNumber } from './setting.js';

/** Where ipam writes who had which address. */
export interface AuditConfig {
  /** `-` is standard output. Absent: no audit log. */
  readonly auditLog?: string | undefined;
  readonly auditMaxMiB: number;
  readonly auditMaxFiles: number;
}

export const AUDIT_SETTINGS: Settings<AuditConfig> = {
  auditLog: {
    flag: 'audit-log',
    placeholder: 'file',
    description: 'file for the audit log, which says who had which address; - is standard output',
    defaultValue: undefined,
    defaultText: 'none, no audit log',
    parse: parseAuditLog,
  },
  auditMaxMiB: {
    flag: 'audit-max-size',
    placeholder: 'MiB',
    description: 'size of a file of the audit log in MiB, after which a new one begins',
    defaultValue: 100,
    parse: wholeNumber(1, 10_000),
  },
  auditMaxFiles: {
    flag: 'audit-max-files',
    placeholder: 'number',
    description: 'number of files of the audit log, the current one included; older ones are deleted',
    defaultValue: 5,
    parse: wholeNumber(1, 1_000),
  },
};

function parseAuditLog(text: string): string {
  if (text !== '-' && !text.startsWith('/')) throw new TypeError('must be an absolute path, or - for standard output');
  return parseText(text);
}
