import type { Client } from '../client.js';
import { type Logger, silentLogger } from '../log.js';
import { type Resource, resourcePath } from '../resource.js';

/** The part of a kind that a watch covers. */
interface WatchedPart {
  readonly resource: Resource;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** etcd was restored from a backup under this process. */
export class HistoryWentBackError extends Error {
  constructor({ resource }: WatchedPart, seen: string, found: string) {
    super(
      `the API server's data is older than what this process has seen (${resource.plural} at resourceVersion ${found}, seen ${seen}), as after ` +
        'a restore of etcd from a backup: this process must start again',
    );
  }
}

/**
 * Detects that the API server's data went back in time. A watch cannot: from a resourceVersion of the future, the API server sends neither events
 * nor bookmarks until it has caught up, and the caches keep what no longer exists. A consistent list shows the present version.
 */
export class HistoryGuard {
  readonly #client: Pick<Client, 'transport'>;
  readonly #log: Logger;
  #report: (error: HistoryWentBackError) => void = () => undefined;

  constructor(client: Pick<Client, 'transport'>, log: Logger = silentLogger) {
    this.#client = client;
    this.#log = log;
  }

  /** Registers what ends the process. */
  onWentBack(report: (error: HistoryWentBackError) => void): void {
    this.#report = report;
  }

  /**
   * Call it before a watch continues after a failure.
   * @param seen the last resourceVersion
   * @throws {HistoryWentBackError} after it was reported
   */
  async check(part: WatchedPart, seen: string, signal: AbortSignal): Promise<void> {
    const { resource, namespace, labelSelector, fieldSelector } = part;
    const path = resourcePath(resource, { namespace });
    const query = { limit: 1, labelSelector, fieldSelector };
    const list = (await this.#client.transport.request({ method: 'GET', path, query, signal })) as {
      metadata?: { resourceVersion?: string };
    };
    this.compare(part, seen, list.metadata?.resourceVersion ?? '');
  }

  /**
   * Compares a version that was seen with that of a later consistent list.
   * @throws {HistoryWentBackError} after it was reported
   */
  compare(part: WatchedPart, seen: string, found: string): void {
    if (!isOlder(found, seen)) return;
    const error = new HistoryWentBackError(part, seen, found);
    this.#log.error({ resource: part.resource.plural }, error.message);
    this.#report(error);
    throw error;
  }
}

const DECIMAL = /^[1-9]\d{0,19}$/;

/** Versions of one kind are decimal numbers that grow (KEP-5504). Others cannot be compared. */
function isOlder(version: string, other: string): boolean {
  return DECIMAL.test(version) && DECIMAL.test(other) && BigInt(version) < BigInt(other);
}
