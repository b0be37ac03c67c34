import { join } from 'node:path';

/** The page whose commands the demo runs. */
export const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'tutorials', 'bridge-in-five-minutes.md');
