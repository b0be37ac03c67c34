import type { KubeObject } from '../../../../api/meta.js';
import type { Pool } from '../../../../addressing/pool/pool.js';

export interface ModelNode extends KubeObject {
  readonly isEnding: boolean;
}

export interface ModelPool extends KubeObject {
  readonly pool: Pool;
  readonly isEnding: boolean;
}
