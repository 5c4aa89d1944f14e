// What report_page.cpp puts together, as bytes of the program. CMakeLists.txt says where d3 lies.
        .section .rodata

        .macro part name
        .global memopt_page_\name
        .hidden memopt_page_\name
memopt_page_\name:
        .endm
        .macro end name
        .global memopt_page_\name\()_end
        .hidden memopt_page_\name\()_end
memopt_page_\name\()_end:
        .byte 0
        .endm

        part html
        .incbin "page/page.html"
        end html

        part style
        .incbin "page/page.css"
        end style

        part d3
        .incbin MEMOPT_D3
        end d3

        part script
        .incbin "page/data.js"
        .incbin "page/text.js"
        .incbin "page/state.js"
        .incbin "page/load.js"
        .incbin "page/layout.js"
        .incbin "page/lanes.js"
        .incbin "page/limits.js"
        .incbin "page/flame.js"
        .incbin "page/table.js"
        .incbin "page/details.js"
        .incbin "page/main.js"
        end script

        .section .note.GNU-stack,"",@progbits
