import type { RequestContext } from './request-context.js';

interface AddTurn {
  /** False once a later sandbox of the pod has sent an ADD for the interface: it may have the leases, and its DEL releases them. */
  readonly isLatest: () => boolean;
  readonly end: () => void;
}

/** The limits of an ADD, and whether it still counts. */
export type AddContext = RequestContext & Pick<AddTurn, 'isLatest'>;

/**
 * The order in which ADDs for an interface of a pod arrive, which is that of its sandboxes. It is known while one of them is under way: a slow
 * one may come to its lease long after that of a later sandbox has ended.
 */
export class AddOrder {
  readonly #underWay = new Map<string, { latest: AddTurn; count: number }>();

  /** @param key the pod and its interface */
  begin(key: string): AddTurn {
    const turn: AddTurn = {
      isLatest: () => this.#underWay.get(key)?.latest === turn,
      end: () => {
        const order = this.#underWay.get(key);
        if (order !== undefined && --order.count === 0) this.#underWay.delete(key);
      },
    };
    const count = (this.#underWay.get(key)?.count ?? 0) + 1;
    this.#underWay.set(key, { latest: turn, count });
    return turn;
  }
}
