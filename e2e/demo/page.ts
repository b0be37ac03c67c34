import { join } from 'node:path';

/** What the demo follows. */
export const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'tutorials', 'bridge-in-five-minutes.md');
