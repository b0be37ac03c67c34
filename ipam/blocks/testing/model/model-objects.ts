import type { ObjectMeta } from '../../../../api/meta.js';
import type { Pool } from '../../../../addressing/pool/pool.js';

type Meta = ObjectMeta & { uid: string; resourceVersion: string };

export interface ModelNode {
  readonly metadata: Meta;
  readonly isEnding: boolean;
}

export interface ModelPool {
  readonly metadata: Meta;
  readonly pool: Pool;
  readonly isEnding: boolean;
}
