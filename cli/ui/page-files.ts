import { CommandError } from '../command-error.js';

/** The web page, as build.js bundles it. */
export interface PageFiles {
  readonly script: string;
  readonly style: string;
}

/** build.js replaces this name by the files. */
declare const UI_PAGE: PageFiles | undefined;

/** @throws {CommandError} if this is not the built plugin */
export function builtPage(): PageFiles {
  if (typeof UI_PAGE === 'undefined') {
    throw new CommandError(
      'the web page is only in the built plugin: run `make build`, then dist/kubectl-holdfast.cjs ui',
    );
  }
  return UI_PAGE;
}
