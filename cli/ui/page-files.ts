import { CommandError } from '../command-error.js';

/** The web page, as build.js bundles it. */
export interface PageFiles {
  readonly script: string;
  readonly style: string;
}

/** build.js replaces these names by the texts of the files. */
declare const UI_PAGE_SCRIPT: string | undefined;
declare const UI_PAGE_STYLE: string | undefined;

/** @throws {CommandError} if this is not the built plugin */
export function builtPage(): PageFiles {
  if (typeof UI_PAGE_SCRIPT === 'undefined' || typeof UI_PAGE_STYLE === 'undefined') {
    throw new CommandError(
      'only the built plugin contains the web page: run `make build`, then dist/kubectl-holdfast.cjs ui',
    );
  }
  return { script: UI_PAGE_SCRIPT, style: UI_PAGE_STYLE };
}
