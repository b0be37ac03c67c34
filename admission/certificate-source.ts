/** What a TLS server shows and signs with, as PEM. */
export interface ServingPair {
  cert: string;
  key: string;
}

/** Where the serving certificate comes from. */
export interface CertificateSource {
  /**
   * Begins to look after the certificate. Does not wait for it.
   * @param use called with the first certificate and with each new one
   */
  start(use: (pair: ServingPair) => void): void;
  stop(): Promise<void>;
  /** @returns undefined where a certificate is in use that API servers trust and that has not expired, else why not */
  ready(): string | undefined;
}
