import { ADDRESS_STATES, STATE_NAMES } from '../../addressing/address-states.js';

/** The part of the style sheet that shows the states of addresses: a variable `--free` and a class `s-free` of each. */
export function stateStyles(): string {
  const classes = STATE_NAMES.map((state) => {
    const { ink = 'var(--page)' } = ADDRESS_STATES[state];
    return `.s-${state}{background:var(--${state});color:${ink}}`;
  });
  return [`:root{${coloursOf(0)}}@media (prefers-color-scheme:dark){:root{${coloursOf(1)}}}`, ...classes].join('\n');
}

function coloursOf(scheme: 0 | 1): string {
  return STATE_NAMES.map((state) => `--${state}:${ADDRESS_STATES[state].colours[scheme]}`).join(';');
}
