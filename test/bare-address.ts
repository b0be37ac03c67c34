/** Of an address as statuses and requests write it: without prefix length. */
export function bareAddress(ip: string): string {
  return ip.replace(/\/.*$/, '');
}
