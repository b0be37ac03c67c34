/** Bounds of a bundle. */
export interface BundleLimits {
  readonly objectsPerKind: number;
  readonly logBytes: number;
  readonly metricsBytes: number;
  /** Before compression, of objects, logs and metrics. */
  readonly totalBytes: number;
}

const MIB = 1024 * 1024;

export const BUNDLE_LIMITS: BundleLimits = {
  objectsPerKind: 100_000,
  logBytes: 4 * MIB,
  metricsBytes: 2 * MIB,
  totalBytes: 512 * MIB,
};
