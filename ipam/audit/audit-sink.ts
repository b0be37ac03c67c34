/** Where the lines of the audit log go. Writes are never concurrent. */
export interface AuditSink {
  /** The most bytes that one write should have. */
  readonly batchBytes: number;
  /**
   * Writes whole lines. A write that fails is repeated with the same lines, so a reader may see a line twice.
   * @throws {Error} if not all of them are written
   */
  write(lines: string): Promise<void>;
  close(): Promise<void>;
}
