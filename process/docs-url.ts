import { VERSION } from './version.js';

/** A release replaces it by its own. */
const REPOSITORY = 'https://example.com/holdfast';

/**
 * Returns the URL of a page of the documentation, as it is in this version.
 * @param page below `docs/`, like `how-to/install.md#adapt-the-nodes`
 */
export function docsUrl(page: string): string {
  return `${REPOSITORY}/blob/v${VERSION}/docs/${page}`;
}
