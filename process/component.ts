/** A part of a process that starts, reports whether it is ready, and stops. */
export interface Component {
  readonly name: string;
  /** Resolves when the component runs, which may be before it is ready. */
  start(): Promise<void>;
  /** Finishes current work, accepts no more, and leaves nothing running. */
  stop(): Promise<void>;
  /** @returns undefined if it is ready, otherwise why not */
  ready?(): string | undefined;
  /** @returns what an administrator must correct although the component is ready, if anything */
  notice?(): string | undefined;
}
