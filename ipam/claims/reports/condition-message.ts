/** A first word that is neither a field, a name nor an IPv6 address. */
const FIRST_WORD = /^[a-z]+(?= )/;

/** Begins a message with a capital, as those of conditions do. CNI errors and logs quote the same text in lower case. */
export function conditionMessage(message: string): string {
  return message.replace(FIRST_WORD, (word) => word.charAt(0).toUpperCase() + word.slice(1));
}
