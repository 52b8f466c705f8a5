/* base/hex.h - a hexadecimal digit. */
#ifndef NIB_BASE_HEX_H
#define NIB_BASE_HEX_H

/* 0 … 15, or -1. */
static inline int nib_hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
