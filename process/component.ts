/** Something a process runs: it starts, says whether it is ready, and stops. */
export interface Component {
  readonly name: string;
  /** Resolves once the part runs, which may be before it is ready. */
  start(): Promise<void>;
  /** Finishes what is under way, takes nothing new, and leaves nothing running. */
  stop(): Promise<void>;
  /** @returns undefined where it is ready, else why not */
  ready?(): string | undefined;
  /** @returns what somebody has to correct although the part is ready; undefined: nothing */
  notice?(): string | undefined;
}
