export interface BundleOptions {
  /** Only tenants' objects of this namespace. */
  readonly namespace?: string | undefined;
  /** Only log lines of the last seconds. */
  readonly sinceSeconds?: number | undefined;
}
