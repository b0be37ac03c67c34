/** One measured figure. */
export interface Figure {
  name: string;
  value: number;
  unit: string;
  target?: { atMost: number } | { atLeast: number };
}

export function isMet({ value, target }: Figure): boolean | undefined {
  if (target === undefined) return undefined;
  return 'atMost' in target ? value <= target.atMost : value >= target.atLeast;
}

export function table(figures: readonly Figure[]): string {
  const rows = figures.map((figure) => [
    figure.name,
    `${round(figure.value)} ${figure.unit}`.trim(),
    targetText(figure),
    { true: 'met', false: 'MISSED', undefined: '' }[String(isMet(figure)) as 'true' | 'false' | 'undefined'],
  ]);
  const all = [['figure', 'value', 'target', ''], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...all.map((row) => row[column]!.length)));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function targetText({ target }: Figure): string {
  if (target === undefined) return '';
  return 'atMost' in target ? `≤ ${round(target.atMost)}` : `≥ ${round(target.atLeast)}`;
}

function round(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
