import { ADDRESS_STATES, type Hatching, STATE_NAMES } from '../../addressing/address-states.js';
import { CommandError } from '../exit-code.js';

/** Nothing is loaded from elsewhere, and text can never become markup or script. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:",
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};

const HEAD = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>Holdfast</title>`;

export const PAGE = `${HEAD}
<link rel="stylesheet" href="page.css">
<script type="module" src="page.js"></script>
</head>
<body><div id="app"><header class="top"><a class="brand" href="#/">Holdfast</a></header><main><p>Loading…</p></main></div></body>
</html>
`;

/**
 * A page or file that leads to another page. A redirect of the server would be part of the request of another site or file, and the browser would
 * not send the cookie.
 * @param url without `"` and `&`
 */
export function leadingPage(url: string): string {
  return `${HEAD}
<meta http-equiv="refresh" content="0; url=${url}">
</head>
<body><p><a href="${url}">Open Holdfast</a></p></body>
</html>
`;
}

/** @param message not yet escaped */
export function refusalPage(message: string): string {
  return `${HEAD}
</head>
<body><main>
<h1>Holdfast does not show this page</h1>
<p>${message.replaceAll(/[&<>"']/g, (found) => `&#${found.charCodeAt(0)};`)}</p>
<p>Open the address that <code>kubectl holdfast ui</code> has printed. It can be used once: press Enter in that terminal for a new one.
If you have not used it yet, somebody else has: stop the command with Ctrl-C.</p>
</main></body>
</html>
`;
}

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

/** The angles of gradients in CSS. */
const ANGLES: Readonly<Record<Hatching, string>> = { rising: '135deg', falling: '45deg', level: '0deg' };

/** The part of the style sheet that shows the states of addresses: a variable `--free` and a class `s-free` of each. */
export function stateStyles(): string {
  const classes = STATE_NAMES.map((state) => {
    const { hatching } = ADDRESS_STATES[state];
    const lines = `0 2px,var(--page) 2px 5px`;
    return hatching === undefined
      ? `.s-${state}{background:var(--${state})}`
      : `.s-${state}{background:repeating-linear-gradient(${ANGLES[hatching]},var(--${state}) ${lines})}`;
  });
  return [`:root{${coloursOf(0)}}@media (prefers-color-scheme:dark){:root{${coloursOf(1)}}}`, ...classes].join('\n');
}

function coloursOf(scheme: 0 | 1): string {
  return STATE_NAMES.map((state) => `--${state}:${ADDRESS_STATES[state].colours[scheme]}`).join(';');
}
